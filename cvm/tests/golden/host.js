// Waits for the host instead of an answer.
const before = Math.random();
function main() { const text = fs.readFile('notes.txt'); const done = fs.writeFile('out.txt', String(text)); return [text, done, before === Math.random()]; }
