// A summary of every text file of a folder, then one of all of them. A thousand files are a thousand tasks: the agent
// may stop in between, and so may the machine.
//   vm-system program start examples/durable/summarise.ts --name summary --worktree-path . -- notes
// The pending task: `vm-system task get summary`; the answer: `vm-system task submit summary TEXT`.

type Summary = { name: string; text: string };

const SHOWN = 4000;

function summarise(path: string, place: string): Summary | null {
  const content = fs.readFile(path);
  if (content === null) {
    console.warn(`${path} cannot be read`);
    return null;
  }
  const name = path.slice(path.lastIndexOf("/") + 1);
  return { name, text: CC(`${place} One sentence about ${name}:\n\n${content.slice(0, SHOWN)}`) };
}

function main() {
  const folder = args[0] ?? ".";
  const files = fs.listFiles(folder, { recursive: true, filter: "**/*.txt" });
  const summaries: Summary[] = [];
  for (const [i, path] of files.entries()) {
    const summary = summarise(path, `(${i + 1}/${files.length})`);
    if (summary) summaries.push(summary);
    if ((i + 1) % 250 === 0) console.log(`${i + 1} of ${files.length}`);
  }
  const lines = summaries.map(({ name, text }) => `- ${name}: ${text}`);
  const overall = CC(`One paragraph about all of them:\n\n${lines.join("\n").slice(0, 50 * SHOWN)}`);
  const written = fs.writeFile(`${folder}/SUMMARY.md`, `# Summary\n\n${overall}\n\n${lines.join("\n")}\n`);
  return { files: summaries.length, overall, written };
}
