const page = await slack.getWebpage({ url: "www.dora-website.com" });
const email = page.match(/[\w.]+@[\w.]+\w/)[0];
await slack.inviteUserToSlack({ user: "Dora", user_email: email });
for (const channel of ["general", "random"]) {
  await slack.addUserToChannel({ user: "Dora", channel });
}
return { email, general: await slack.getUsersInChannel({ channel: "general" }) };
