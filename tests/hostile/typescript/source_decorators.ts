// attack: decorators, enums and namespaces whose making runs code, in an order that a transformer could mistake
// outcome: error decorators are not supported
// control: none: it is no plain JavaScript
const order: string[] = [];
const note = (name: string) => (order.push(name), (value: unknown) => value);
@note('class')
class Noted {
  @note('method') method() {}
}
order;
