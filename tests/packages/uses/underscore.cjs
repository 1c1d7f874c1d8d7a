const _ = require('underscore');
console.log(_.VERSION, _.map({ a: 1, b: 2 }, (v, k) => k + v), _.countBy([1, 2, 3, 4], (n) => (n % 2 ? 'odd' : 'even')));
console.log(_.chain([3, 1, 2]).sortBy().map((x) => x * 2).reverse().value(), _.where([{ a: 1, b: 2 }, { a: 1, b: 3 }], { a: 1 }));
console.log(_.template('<% _.each(items, function (i) { %><li><%- i %></li><% }); %>')({ items: ['a', '<b>'] }));
console.log(_.isEqual({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), _.flatten([1, [2, [3, [4]]]]), _.uniq([1, 2, 1]), _.invert({ a: 'x' }));
console.log(_.memoize((n) => n * 2)(4), _.partial((a, b) => a - b, _, 5)(20), _.escape('<&">'), _.unescape('&lt;'), _.uniqueId('c'));
