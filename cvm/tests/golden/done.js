// Has ended with a result.
function main() { return { greeting: `hello ${CC('name?')}`, list: [1, , 3] }; }
