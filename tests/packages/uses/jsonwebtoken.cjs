const jwt = require('jsonwebtoken');
const token = jwt.sign({ sub: 'u1', admin: true }, 'secret', { noTimestamp: true }); console.log(token, jwt.verify(token, 'secret'), jwt.decode(token, { complete: true }));
for (const [t, k, o] of [[token, 'wrong'], ['x.y', 's'], [jwt.sign({ exp: 1000 }, 's'), 's'], [jwt.sign({ a: 1 }, 's', { audience: 'me', algorithm: 'HS512', noTimestamp: true }), 's', { audience: 'you' }], [token, 'secret', { algorithms: ['HS384'] }]]) { try { console.log(jwt.verify(t, k, o)); } catch (e) { console.log(e.name, e.message, e.expiredAt); } }
jwt.sign({ x: 1 }, 's', { expiresIn: '1h', header: { kid: 'k' } }, (e, t) => jwt.verify(t, 's', (err, v) => console.log(err, v.exp - v.iat)));
