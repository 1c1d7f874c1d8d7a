const BigNumber = require('bignumber.js');
const x = new BigNumber('123456789.123456789');
console.log(x.times('987654321.987654321').toString(), new BigNumber(0.1).plus(0.2).toString(), x.toFormat(2), x.sqrt().toFixed(20), new BigNumber('ff', 16).toNumber(), new BigNumber(1).div(3).toFixed(), x.pow(5).toExponential(10), new BigNumber(NaN).isNaN(), JSON.stringify(x), BigNumber.max(1, '5', 3).toString(), new BigNumber(255).toString(2), x.integerValue().modulo(1000).toString(), x);
