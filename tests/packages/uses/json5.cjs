const JSON5 = require('json5');
console.log(JSON5.parse("{ // c\n a: 'x', 'b': +1, c: .5, d: 0xFF, e: [1, 2,], f: Infinity, g: 'multi\\\nline', /* z */ $h: NaN }"), JSON5.stringify({ a: 1, 'b-c': ['x', "it's"], d: -0 }, null, 2));
try { JSON5.parse('{a: 1,, }'); } catch (e) { console.log(e.name, e.message, e.lineNumber, e.columnNumber); }
