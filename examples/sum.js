// Adds the numbers of its standard input, line by line, as they come.
// printf '20\n22\n' | vm-system run examples/sum.js
const readline = require('readline');

async function main() {
  let [sum, lines] = [0, 0];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    lines += 1;
    const number = Number(line);
    if (line.trim() === '' || Number.isNaN(number)) console.error(`line ${lines} is no number: ${line}`);
    else sum += number;
  }
  console.log(sum);
}

main();
