const nunjucks = require('nunjucks');
const fs = require('fs');
fs.writeFileSync('base.njk', '<{% block b %}default{% endblock %}>'); fs.writeFileSync('macros.njk', '{% macro m(x, y=2) %}{{ x }}-{{ y }}{% endmacro %}');
const env = nunjucks.configure('.', { autoescape: true }); env.addFilter('twice', (x) => `${x}${x}`);
console.log(env.renderString('{% extends "base.njk" %}{% block b %}{{ super() }} {{ n | twice | upper }}{% endblock %}', { n: 'a' }));
console.log(env.renderString('{% import "macros.njk" as q %}{% for k, v in o %}{{ loop.index }}{{ k }}={{ v | default("?") }};{% endfor %}{{ q.m(1) }} {{ "<b>" }} {{ [3,1,2] | sort | join(",") }} {{ 3 if t else 4 }} {% set z = 5 %}{{ z ** 2 }}', { o: { a: 1, b: undefined }, t: false }));
try { env.renderString('{{ a.b.c() }}'); } catch (e) { console.log(e.name, e.message); }
env.renderString('{{ x }}', { x: 'async' }, (e, r) => { console.log(e, r); fs.rmSync('base.njk'); fs.rmSync('macros.njk'); });
