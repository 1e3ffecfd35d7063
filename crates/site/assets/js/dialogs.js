// Confirmation dialogs: `<dialog data-dialog>` with a button to confirm and one to close.

/**
 * Shows a dialog of this page. Resolves to whether it was confirmed; Escape and closing are a no.
 */
export function confirmed(name) {
  const dialog = document.querySelector(`[data-dialog="${name}"]`);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}
