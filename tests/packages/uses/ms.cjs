const ms = require('ms');
console.log(['2 days', '1d', '10h', '2.5 hrs', '5s', '1y', '100', '-3 days', '1 week'].map((t) => ms(t)), [60000, 2 * 60000, -3 * 60000, 86400000 * 20, 500].map((n) => [ms(n), ms(n, { long: true })]));
for (const wrong of ['', {}, Infinity]) { try { console.log(ms(wrong)); } catch (e) { console.log(e.message); } }
