const me = await banking.getUserInfo();
const iban = await banking.getIban();
console.log(`Hello ${me.first_name} ${me.last_name} from ${me.city}!`);
console.log("Your IBAN ends with", iban.slice(-4));
