const s = require('superstruct');
const User = s.object({ id: s.number(), name: s.size(s.string(), 1, 5), tags: s.optional(s.array(s.string())), at: s.defaulted(s.number(), 7), kind: s.enums(['a', 'b']) });
console.log(s.create({ id: 1, name: 'x', kind: 'a' }, User), s.is({}, User), [...(s.validate({ id: 'no', name: 'toolong', kind: 'c', extra: 1 }, User)[0]?.failures() ?? [])].map((f) => f.message));
try { s.assert({ id: 1 }, User); } catch (e) { console.log(e.name, e.message, e.path, e.type); } console.log(s.mask({ id: 1, x: 2 }, s.type({ id: s.number() })), s.coerce(s.number(), s.string(), parseFloat).type, s.is([1, 'x'], s.tuple([s.number(), s.string()])));
