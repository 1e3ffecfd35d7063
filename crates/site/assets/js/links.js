// The pages of mailed links. Opening one changes nothing: only its button does.
import { call } from "./api.js";
import { carried, dropCarried, onSubmit, step } from "./forms.js";

const token = carried("token");

onSubmit("forgot", async ({ email }) => {
  await call("POST", "/api/auth/password/forgot", { email });
  step("done");
});

onSubmit("reset", async ({ password }) => {
  await call("POST", "/api/auth/password/reset", { token, password });
  dropCarried();
  step("done");
});

onSubmit("verify", async () => {
  await call("POST", "/api/auth/email/verify", { token });
  dropCarried();
  step("done");
});

if (!token && document.querySelector('[data-step="missing"]')) step("missing");
