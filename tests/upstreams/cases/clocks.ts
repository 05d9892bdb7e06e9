// Every pair of time zones, and one that does not exist.
const zones: string[] = @ZONES@;
const table: Record<string, unknown> = {};
for (const source of zones) {
  for (const target of zones) {
    const there = await time.convert_time(source, "21:40", target);
    table[`${source} ${target}`] = [there.target.datetime.slice(11, 16), there.time_difference];
  }
}
try {
  await time.convert_time({ source_timezone: "UTC", time: "12:00", target_timezone: "Mars/Olympus" });
} catch (error) {
  if (!(error instanceof ToolError)) throw error;
  table.wrong = [error.code, error.server, error.tool, error.message.includes("Mars/Olympus")];
}
return table;
