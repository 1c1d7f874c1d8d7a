const Mustache = require('mustache');
console.log(Mustache.render('{{name}} {{{raw}}} {{raw}} {{#items}}<{{.}}>{{/items}}{{^none}}empty{{/none}}{{! c }}{{>p}}{{#wrap}}x{{/wrap}}', { name: 'n', raw: '<&>', items: [1, 2], wrap: () => (t, r) => `[${r(t)}]` }, { p: '({{name}})' }));
console.log(Mustache.parse('a {{b}} {{#c}}d{{/c}}'), Mustache.render('<% x %>', { x: 1 }, {}, ['<%', '%>']));
try { Mustache.render('{{#a}}'); } catch (e) { console.log(e.message); }
