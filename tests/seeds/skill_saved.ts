// Written once, and kept. The seed's skill is a text with a `return` at its top; here it is a function in a module.
await skills.save({
  name: "db-backup-report",
  description: "Generate database backup report",
  tags: ["supabase", "backup", "reporting"],
  code: `
    export async function db_backup_report() {
      const tables = await supabase.listTables(["public"]);
      const migrations = await supabase.listMigrations();

      return {
        tables: tables.length,
        lastMigration: migrations[migrations.length - 1]?.name,
        timestamp: new Date().toISOString()
      };
    }
  `,
});

// Search skills
const found = await skills.search("backup");
return found.map((skill) => skill.name);
