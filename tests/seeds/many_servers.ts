// Three servers, with positional arguments.
// Step 1: Query database
const users = await supabase.executeSQL("SELECT * FROM users LIMIT 10");

// Step 2: Process data (happens in sandbox)
const userEmails = users.map(u => u.email);

// Step 3: Create GitHub issue with findings
await github.createIssue(
  "owner",
  "repo",
  "User Analysis",
  `Found ${users.length} users`
);

// Step 4: Lookup documentation
const docs = await context7.getDocsByName("supabase-js", "RLS");

// Return only the summary
return {
  userCount: users.length,
  issueCreated: true,
  docsFound: docs.tokens > 0
};
