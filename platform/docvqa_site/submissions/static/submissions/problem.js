// The coded problems that the browser itself finds. Their texts are in the page, from evaluator/errors/codes.py.
const { texts: TEXTS, docs } = JSON.parse(document.getElementById("error-texts").textContent);

// The address of the documentation, for links of problems.
export const DOCS = docs;

// What the details don't say, such as the next step, is what the table says of the code.
export function problem(code, details = {}) {
  return { code, ...TEXTS[code], ...details };
}

export function unreadable(filename, detail) {
  return problem("E_ARTIFACT_MISSING", {
    message: "The browser can't read the file any more.",
    where: filename,
    found: detail,
    next_step: "It may have been moved or changed on your disk: choose it again.",
  });
}
