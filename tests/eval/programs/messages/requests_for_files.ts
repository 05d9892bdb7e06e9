await messages.messageLogin({ user_id: "USR001" });
const [found, sent] = [await messages.searchMessages({ keyword: "upload" }), await messages.viewMessagesSent()];
return {
  receivers: found.results.map((r) => r.receiver_id).sort(),
  conversations: Object.keys(sent.messages).length,
};
