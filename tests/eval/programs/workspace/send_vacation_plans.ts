const plans = await workspace.search_files_by_filename({ filename: "vacation-plans" });
const to = await workspace.search_contacts_by_name({ query: "Lily White" });
const email = await workspace.send_email({
  recipients: to.map((c) => c.email),
  subject: "Vacation plans",
  body: "Attached: " + plans.map((p) => p.filename).join(", "),
  attachments: plans.map((p) => ({ type: "file", file_id: p.id_ })),
});
console.log(`sent email ${email.id_} with ${email.attachments.length} attachments`);
