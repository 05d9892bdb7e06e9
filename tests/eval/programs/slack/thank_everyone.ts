const users = await slack.get_users_in_channel({ channel: "general" });
for (const user of users) {
  await slack.send_direct_message({ recipient: user, body: `Thank you, ${user}!` });
}
return users.length;
