// Sign-in: a password, and a code for accounts with a second factor.
import { SIGNED_IN, call, memory } from "./api.js";
import { carried, dropCarried, onSubmit, step } from "./forms.js";

let challenge = carried("challenge");

function enter(form) {
  memory("localStorage").set(SIGNED_IN, "1");
  dropCarried();
  location.assign(form.dataset.next);
}

onSubmit("login", async ({ email, password }, _, form) => {
  const { status, body } = await call("POST", "/api/auth/login", { email, password });
  if (status !== 202) return enter(form);
  challenge = body.challenge;
  step("second");
  document.getElementById("code").focus();
});

onSubmit("second", async ({ code }, _, form) => {
  await call("POST", "/api/auth/login/second-factor", { challenge, code: code.trim() });
  enter(form);
});

// The user came back from a provider and still has to enter the code.
if (challenge) step("second");
