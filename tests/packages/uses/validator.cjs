const v = require('validator');
console.log(v.isEmail('foo@bar.com'), v.isURL('http://a.b/c?d#e'), v.isUUID('x'), v.isISO8601('2020-02-30', { strict: true }), v.isCreditCard('4111 1111 1111 1111'), v.isIBAN('DE89370400440532013000'), v.isIP('::1', 6), v.isMobilePhone('+491701234567', 'de-DE'), v.isStrongPassword('Abcdef1!'));
console.log(v.escape('<a href="x">'), v.normalizeEmail('Some.One+tag@GMail.com'), v.trim('  x '), v.toDate('2020-01-01'), v.isJWT('a.b.c'), v.isLatLong('10,20'), v.isHexColor('#fff'), v.isBase64('aGk='), v.isISBN('9783161484100'), v.blacklist('abc', 'b'), v.isFQDN('ex-ample.com'), v.isPostalCode('12345', 'DE'));
try { v.isEmail(5); } catch (e) { console.log(e.name, e.message); }
