import fs from 'node:fs';
import readline from 'node:readline';
fs.writeFileSync('data.csv', 'id,value\n' + Array.from({ length: 100 }, (_, i) => `${i},${i * i}`).join('\n'));
let sum = 0; let lines = 0;
for await (const line of readline.createInterface({ input: fs.createReadStream('data.csv'), crlfDelay: Infinity })) { if (lines++ > 0) sum += Number(line.split(',')[1]); }
console.log({ lines, sum }); fs.unlinkSync('data.csv');
