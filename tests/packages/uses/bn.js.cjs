const BN = require('bn.js');
const a = new BN('dead', 16); const b = new BN('101010', 2);
console.log(a.add(b).toString(10), a.mul(b).toString(16), a.pow(new BN(20)).toString(), new BN('123456789012345678901234567890').mod(new BN(97)).toString(), a.gcd(b).toNumber(), a.shln(70).toString(16), a.toArray('be', 4), a.toBuffer('le', 5), a.neg().toTwos(32).toString(16), a);
const red = BN.red('k256'); console.log(new BN(7).toRed(red).redInvm().fromRed().toString(16), new BN(3).toRed(BN.mont(new BN(101))).redPow(new BN(50)).fromRed().toString(), a.egcd(b).gcd.toString(), a.cmp(b), a.bitLength());
