const ss = require('simple-statistics');
const d = [2, 4, 4, 4, 5, 5, 7, 9, 12.5];
console.log(ss.mean(d), ss.median(d), ss.mode(d), ss.standardDeviation(d), ss.variance(d), ss.quantile(d, [0.25, 0.9]), ss.linearRegression([[0, 1], [1, 3], [2, 5.5]]), ss.sampleCorrelation([1, 2, 3], [2, 4, 7]), ss.tTest(d, 5), ss.ckmeans([1, 2, 10, 11, 50], 3), ss.factorial(10), ss.probit(0.9), ss.errorFunction(0.5), ss.zScore(78, 80, 5), ss.kMeansCluster && typeof ss.kMeansCluster, ss.interquartileRange(d), ss.jenks([1, 2, 4, 5, 7, 9, 10, 20], 3), ss.cumulativeStdNormalProbability(1));
