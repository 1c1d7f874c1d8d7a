const seedrandom = require('seedrandom');
const r = seedrandom('hello.'); console.log(r(), r(), r.quick(), r.int32(), r.double()); const s = seedrandom('x', { state: true }); s(); const state = s.state(); console.log(s(), seedrandom('', { state })(), seedrandom.alea('q')(), seedrandom.xor128('q')(), seedrandom.tychei('q')());
seedrandom('g', { global: true }); console.log(Math.random(), typeof seedrandom()());
