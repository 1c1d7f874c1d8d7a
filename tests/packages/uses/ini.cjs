const ini = require('ini');
const text = '; comment\nscope = global\n[database]\nuser = dbuser\nport=5432\nflag=true\n[paths.default]\ndatadir = /var/lib\narray[] = first\narray[] = second\nquoted = "a = b"\n';
console.log(ini.parse(text), ini.stringify({ a: 1, s: { x: [1, 2], y: 'a;b', deep: { z: null } } }, { whitespace: true }));
