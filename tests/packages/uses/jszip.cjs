const JSZip = require('jszip');
(async () => {
  const date = new Date(Date.UTC(2020, 0, 1)); const zip = new JSZip(); zip.file('a.txt', 'hello '.repeat(50), { date }); zip.folder('d').file('b.bin', Uint8Array.of(1, 2, 3), { date, compression: 'STORE' }); zip.file('c.json', Promise.resolve('{"x":1}'), { date });
  const bytes = await zip.generateAsync({ type: 'nodebuffer', compression: 'DEFLATE', platform: 'UNIX' }); const again = await JSZip.loadAsync(bytes); console.log(bytes.length, bytes.subarray(0, 4), Object.keys(again.files)); console.log((await again.file('a.txt').async('string')).length, await again.file('d/b.bin').async('uint8array'), JSON.parse(await again.file('c.json').async('text')), again.file(/txt$/).length, again.file('a.txt').date.toISOString());
  zip.generateNodeStream({ streamFiles: true }).on('data', () => {}).on('end', () => console.log('streamed')); try { await JSZip.loadAsync(Buffer.from('nope')); } catch (e) { console.log(e.message); } console.log(await zip.generateAsync({ type: 'base64', compression: 'STORE' }).then((b) => b.slice(0, 8)));
})();
