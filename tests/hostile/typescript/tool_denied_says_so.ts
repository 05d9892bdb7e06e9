// attack: call a denied tool
// outcome: error delete_everything
// control: none: a way into this library only
await fixture.delete_everything({});
