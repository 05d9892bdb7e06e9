const user = await travel.getUserInformation();
return `${user["First Name"]} ${user["Last Name"]}, passport ${user["Passport Number"]}`;
