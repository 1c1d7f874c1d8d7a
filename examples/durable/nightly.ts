// A nightly report of what was noted: each night the notes of a folder become one file, named after the night. Load and schedule it with
//   vm-system program load examples/durable/nightly.ts --name nightly
//   vm-system program schedule add nightly --cron '30 2 * * *' --tz Europe/Berlin --worktree-path . -- notes
// A night in which no daemon ran is made up for once. `vm-system program schedule run nightly` writes the report now.

function main() {
  const folder = args[0] ?? "notes";
  const night = env.VM_SYSTEM_SCHEDULED_FOR.slice(0, 10);
  const notes = fs.listFiles(folder, { filter: "*.txt" });
  const lines = notes.map((path) => `- ${path}: ${fs.readFile(path)?.split("\n")[0] ?? "it cannot be read"}`);
  const hours = Number(env.VM_SYSTEM_LATE_MS) / 3_600_000;
  const late = hours >= 1 ? [`(${Math.floor(hours)} hours late)`, ""] : [];
  const report = `reports/${night}.md`;
  const written = fs.writeFile(report, [`# ${night}`, "", ...late, ...lines, ""].join("\n"));
  console.log(`${notes.length} notes of ${night}`);
  return { report, notes: notes.length, written };
}
