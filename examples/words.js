// A text report: the most frequent words, longest lines and letters of a text file.
// vm-system run examples/words.js
// vm-system run examples/words.js examples/data/README.md 5
const fs = require('fs');

const file = args.file ?? process.argv[2] ?? `${__dirname}/words.js`;
const top = args.top ?? Number(process.argv[3] ?? 8);
if (!fs.existsSync(file)) throw new Error(`there is no file ${file} in the worktree`);
const { size } = fs.statSync(file);
const text = fs.readFileSync(file, 'utf8');

const words = text.toLowerCase().match(/\p{L}[\p{L}']*/gu) ?? [];
const counts = new Map();
for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
const best = [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, top);
const lines = text.split('\n');
const longest = lines.reduce((found, line, index) => (line.length > lines[found].length ? index : found), 0);

const bar = (count) => '#'.repeat(Math.ceil((count / best[0][1]) * 30));
console.log(`${file}: ${size} bytes, ${lines.length} lines, ${words.length} words, ${counts.size} different`);
for (const [word, count] of best) console.log(`${word.padStart(12)} ${String(count).padStart(4)} ${bar(count)}`);
console.log(`longest line: ${longest + 1} (${lines[longest].length} characters)`);
