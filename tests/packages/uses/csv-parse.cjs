const { parse } = require('csv-parse');
const { parse: parseSync } = require('csv-parse/sync');
const text = 'id,name,note\n1,"Smith, J","said ""hi"""\n2,Ann,\n3,Bob,"two\nlines"\n';
console.log(parseSync(text, { columns: true, cast: (v, c) => (c.column === 'id' ? +v : v) }), parseSync('a;b\n#c\n x ; y ', { delimiter: ';', trim: true, comment: '#' }));
try { parseSync('a,b\n1,2,3'); } catch (e) { console.log(e.code, e.message); }
const parser = parse({ columns: true });
parser.on('readable', () => { let r; while ((r = parser.read()) !== null) console.log('row', r); });
parser.on('end', () => console.log('end', parser.info.records)); parser.on('error', (e) => console.log(e.message));
parser.write(text.slice(0, 25)); parser.write(text.slice(25)); parser.end();
(async () => { for await (const r of require('stream').Readable.from([text]).pipe(parse({ from_line: 2 }))) console.log('iterated', r); })();
