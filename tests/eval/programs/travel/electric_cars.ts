const companies = ["SunSet Rent-A-Car", "Speedy Rentals", "LAX Car Rental"];
const options = await travel.getCarFuelOptions({ company_name: companies });
const electric = companies.filter((name) => options[name].includes("Electric"));
return await travel.getCarRentalAddress({ company_name: electric });
