const pug = require('pug');
console.log(pug.render('doctype html\nhtml\n  body.main#top(data-x="1" class={a: true, b: false})\n    each n, i in [1, 2]\n      p= n * i\n    - const t = "<esc>"\n    | #{t} !{t}\n    mixin m(v)\n      i&attributes(attributes)= v\n    if ok\n      +m("z")(q=1)\n    a(href="/" + "x"): b text\n', { ok: true, pretty: true }));
try { pug.render('p\n   a\n  b'); } catch (e) { console.log(e.code, e.line, e.msg); }
console.log(pug.compileClient('p= x').includes('function template'), pug.compile('case n\n  when 1: p one\n  default: p other')({ n: 1 }));
