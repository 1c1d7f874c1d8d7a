const bytes = require('bytes');
console.log([0, 1, 1024, 1536, 1e6, 1e9, 1e15, -2048].map((n) => [bytes(n), bytes.format(n, { unitSeparator: ' ', decimalPlaces: 1 })]), ['1kb', '1.5 MB', '10', 'x', '-3gb'].map((t) => bytes.parse(t)));
console.log(bytes(123456789, { thousandsSeparator: ',', unit: 'B', fixedDecimals: true }), bytes(1024, { unit: 'MB', decimalPlaces: 5 }));
