const bcrypt = require('bcryptjs');
const hash = bcrypt.hashSync('pässword', '$2a$04$abcdefghijklmnopqrstuu'); console.log(hash, bcrypt.compareSync('pässword', hash), bcrypt.compareSync('other', hash), bcrypt.getRounds(hash), bcrypt.getSalt(hash), bcrypt.genSaltSync(5).length, bcrypt.truncates('x'.repeat(73)));
bcrypt.hash('x', 4).then((h) => bcrypt.compare('x', h)).then(console.log); bcrypt.genSalt(4, (e, s) => console.log(e, s.slice(0, 7))); bcrypt.compare('x', 'bad').then(console.log, (e) => console.log(e.message));
