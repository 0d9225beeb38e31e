"""What only the book needs: figures, live figures and widgets, the ledger of claims, a chapter's set-up."""
