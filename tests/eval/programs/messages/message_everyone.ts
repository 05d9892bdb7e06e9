await messages.message_login({ user_id: "USR001" });
let sent = 0;
const { user_list } = await messages.list_users();
for (const user of user_list) {
  const { user_id } = await messages.get_user_id({ user });
  if (user_id === "USR001") continue;
  const result = await messages.send_message({ receiver_id: user_id, message: `Hello ${user}` });
  if (result.sent_status) sent++;
}
return sent;
