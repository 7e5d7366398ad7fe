// A coded problem as a card, with the same markup as ui/problem.html.
export function problemCard(problem) {
  const card = element("section", "problem");
  card.setAttribute("aria-label", `Problem ${problem.code}`);
  const title = element("p", "problem-title", element("code", "", problem.code), " ", ...withCode(problem.message));
  const facts = element("dl");
  const rows = { where: "Where", expected: "Expected", found: "Found", next_step: "Next" };
  for (const [key, label] of Object.entries(rows)) {
    if (problem[key]) facts.append(element("div", "", element("dt", "", label), element("dd", "", ...(key === "next_step" ? withCode(problem[key]) : [problem[key]]))));
  }
  card.append(title, facts);
  return card;
}

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

// What stands between backticks is code, and an address of this site a link, as the filter `inline_code` shows them.
function withCode(text) {
  return text.split("`").flatMap((part, at) => (at % 2 ? [element("code", "", part)] : withLinks(part)));
}

function withLinks(text) {
  return text.split(/(https?:\/\/\S*[\w/])/).map((part) => {
    if (!part.startsWith(`${location.origin}/`)) return part;
    const link = element("a", "", part);
    link.href = part;
    return link;
  });
}
