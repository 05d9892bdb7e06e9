// Execute a skill
import { db_backup_report } from "skills/db_backup_report";
const result = await db_backup_report();
return { ...result, timestamp: typeof result.timestamp };
