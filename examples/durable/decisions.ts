// A decision tree: each node is a question with a few possible answers. Any other answer is refused with the reason;
// after three of them the program uses the default branch.
//   vm-system program start examples/durable/decisions.ts --interactive

type Tree = { question: string; branches: Record<string, Tree | string>; otherwise: string };

const tree: Tree = {
  question: "Does the service answer?",
  otherwise: "no",
  branches: {
    yes: {
      question: "Are its answers right?",
      otherwise: "unknown",
      branches: { yes: "nothing to do", no: "roll back the last release", unknown: "compare with yesterday's answers" },
    },
    no: {
      question: "Is its process there?",
      otherwise: "no",
      branches: { yes: "look at its log for what it waits for", no: "start it, and look why it ended" },
    },
  },
};

function choose({ question, branches, otherwise }: Tree): string {
  const names = Object.keys(branches);
  try {
    return CC(`${question} (${names.join(", ")})`, { schema: { type: "string", enum: names }, retries: 2 });
  } catch (error) {
    if (!(error instanceof CCError)) throw error;
    console.warn(`${question} nobody knows; taken as ${otherwise}`);
    return otherwise;
  }
}

function main() {
  const path: string[] = [];
  let node: Tree | string = tree;
  while (typeof node !== "string") {
    const choice = choose(node);
    path.push(`${node.question} ${choice}`);
    node = node.branches[choice];
  }
  console.log(node);
  return { path, advice: node };
}
