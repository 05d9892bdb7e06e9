// A server by its name, an array as the one positional argument, and a return at the top.
const tables = await supabase.listTables(["public"]);
return tables.map(t => t.name);
