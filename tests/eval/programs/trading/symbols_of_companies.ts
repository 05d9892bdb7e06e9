const companies = ["Apple", "Zeta Corp", "Neptune Systems"];
const answers = await Promise.all(companies.map((name) => trading.getSymbolByName({ name })));
return answers.map((a) => a.symbol).join(" ");
