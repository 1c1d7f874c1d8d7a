const acorn = require('acorn');
const ast = acorn.parse('const f = async (a, {b = 1, ...c}) => { for await (const x of a) yield_: break; return `t${b}` ?? c?.d; }; class A { #p = 1; static { } }', { ecmaVersion: 'latest', locations: true });
console.log(JSON.stringify(ast).length, ast.body.map((n) => n.type), [...acorn.tokenizer('let x = /re/g + 0b11n;', { ecmaVersion: 2022 })].map((t) => [t.type.label, t.value]), acorn.version); const comments = []; acorn.parse('// a\n/* b */ x', { ecmaVersion: 6, onComment: comments }); console.log(comments);
for (const bad of ['let a; let a', 'x = {', 'import a', '\u{1F600}']) { try { acorn.parse(bad, { ecmaVersion: 2022 }); } catch (e) { console.log(e.name, e.message, e.pos, e.loc); } }
