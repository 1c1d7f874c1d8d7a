const iconv = require('iconv-lite');
for (const e of ['win1252', 'latin1', 'utf16', 'utf-16le', 'cp866', 'shift_jis', 'gbk', 'euc-kr', 'koi8-r', 'utf7', 'big5', 'gb18030']) { const b = iconv.encode('Grüße Привет 日本 한국', e); console.log(e, b.toString('hex'), iconv.decode(b, e)); }
console.log(iconv.encodingExists('nope'), iconv.decode(Buffer.from('efbbbf6869', 'hex'), 'utf8'), iconv.encode('x', 'utf8', { addBOM: true })); try { iconv.encode('x', 'nope'); } catch (e) { console.log(e.message); }
const d = iconv.decodeStream('sjis'); d.on('data', (t) => console.log('stream', t)); d.write(Buffer.from([0x93])); d.end(Buffer.from([0xfa]));
