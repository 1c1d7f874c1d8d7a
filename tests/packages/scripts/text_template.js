const escape = (s) => s.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]);
const html = (strings, ...values) => strings.reduce((out, s, i) => out + s + (i < values.length ? (Array.isArray(values[i]) ? values[i].join('') : escape(String(values[i]))) : ''), '');
console.log(html`<ul>${['a', '<b>'].map((x) => html`<li>${x}</li>`)}</ul><p title="${'"q"'}">${null}</p>`); console.log(String.raw`a\n${1}`, `multi
line`.split('\n'), 'x'.repeat(3), 'abc'.padEnd(6, '-') + '|', 'a-b-c'.replaceAll('-', '+'), '  trim '.trim(), 'ß'.toUpperCase(), 'İ'.toLowerCase().length, 'a,b'.split(','), 'é' === 'e\u0301'.normalize());
const wrap = (t, w) => t.split(' ').reduce((ls, word) => { const l = ls.at(-1); if ((l + ' ' + word).trim().length > w) ls.push(word); else ls[ls.length - 1] = (l + ' ' + word).trim(); return ls; }, ['']); console.log(wrap('the quick brown fox jumps over the lazy dog again and again', 18).join('\n'));
