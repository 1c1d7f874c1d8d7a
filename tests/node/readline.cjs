const readline = require('readline');
const { Readable, PassThrough } = require('stream');
(async () => {
  for await (const line of readline.createInterface({ input: Readable.from(['one\ntw', 'o\r\nthree\r', '\nlast']) })) console.log(JSON.stringify(line));
  const input = new PassThrough();
  const lines = readline.createInterface({ input, output: new PassThrough() });
  lines.question('name? ', (name) => { console.log('hello', name); lines.close(); });
  lines.on('close', () => console.log('closed'));
  input.write('Ada\n');
})();
