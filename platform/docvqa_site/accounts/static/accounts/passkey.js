// Without scripts there are no passkeys, so that only this one offers them.
for (const form of document.querySelectorAll("[data-needs-script]")) form.hidden = false;

// Says on the page why a passkey was not made or not accepted; allauth's scripts only report it to the console.
document.addEventListener("allauth.error", (event) => {
  const problem = document.getElementById("passkey-problem");
  if (!problem) return;
  const { exception } = event.detail;
  const reasons = {
    NotAllowedError: "The device didn't confirm it, or took too long. Try again.",
    InvalidStateError: "This device or key is registered already.",
    SecurityError: "The browser offers passkeys only on a site with a host name and TLS, or on http://localhost.",
  };
  problem.textContent = reasons[exception.name] || `The browser reports: ${exception.message}`;
  problem.hidden = false;
});
