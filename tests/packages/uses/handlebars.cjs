const H = require('handlebars');
H.registerHelper('loud', (t) => t.toUpperCase()); H.registerHelper('list', (items, o) => new H.SafeString(items.map((i) => `<li>${o.fn(i)}</li>`).join(''))); H.registerPartial('who', '<{{name}}>');
const t = H.compile('{{#if ok}}{{loud name}}{{else}}no{{/if}} {{{raw}}} {{raw}} {{#each items as |x i|}}{{i}}:{{x.n}}{{#unless @last}},{{/unless}}{{/each}} {{#list items}}{{n}}{{/list}} {{> who name="p"}} {{#with a.b}}{{c}}{{../ok}}{{/with}} {{lookup items 0}}');
console.log(t({ ok: true, name: 'ann', raw: '<b>&', items: [{ n: 1 }, { n: 2 }], a: { b: { c: 'deep' } } }));
console.log(H.precompile('Hi {{x}}').length > 100, H.parse('{{a}} b').body.map((n) => n.type), H.VERSION);
try { H.compile('{{#if}}')({}); } catch (e) { console.log(e.name, e.message); }
