"""The wordings of questions: several per key, one of which is drawn for each question.

The paper builds its questions the same way: templates for each key, the key's value as the answer (section 3).
"""

import random

INVOICE_PHRASINGS: dict[str, tuple[str, ...]] = {
    "provider_name": (
        "Who issued this invoice?",
        "What is the name of the provider?",
        "Which company sent the bill?",
        "Whose invoice is this?",
        "Name the vendor.",
    ),
    "provider_email": (
        "What is the provider's e-mail address?",
        "To which e-mail address can one write about this invoice?",
        "Which e-mail address does the vendor give?",
        "Give the e-mail contact of the company.",
    ),
    "tax_number": (
        "What is the provider's tax number?",
        "Under which tax number is the vendor registered?",
        "Which tax identification does the invoice show?",
        "Give the tax ID of the company.",
    ),
    "phone": (
        "What is the provider's phone number?",
        "Which number should one call about this bill?",
        "Give the telephone number of the vendor.",
        "How can the company be reached by phone?",
    ),
    "invoice_number": (
        "What is the invoice number?",
        "Which number identifies this invoice?",
        "Under what number was the bill issued?",
        "Give the reference of this invoice.",
    ),
    "invoice_date": (
        "When was the invoice issued?",
        "What is the date of the invoice?",
        "Which day is the bill dated?",
        "Give the issue date.",
    ),
    "due_date": (
        "When is the payment due?",
        "What is the due date?",
        "By which day must the invoice be paid?",
        "Give the last day for payment.",
    ),
    "total_amount": (
        "What is the total amount?",
        "How much has to be paid?",
        "What does the invoice come to?",
        "Give the sum of the bill.",
        "Which amount is due in total?",
    ),
    "currency": (
        "In which currency is the invoice?",
        "What currency are the amounts in?",
        "Which currency has to be paid?",
        "Give the currency of the total.",
    ),
    "payment_terms": (
        "What are the payment terms?",
        "Under which terms is payment asked for?",
        "Which terms of payment does the provider set?",
        "Give the payment condition.",
    ),
}

RECEIPT_PHRASINGS: dict[str, tuple[str, ...]] = {
    "company": (
        "Which company issued the receipt?",
        "What is the name of the shop?",
        "Who is the seller?",
        "Where was this bought?",
        "Name the business on the receipt.",
    ),
    "date": (
        "What is the date of the receipt?",
        "When was the purchase made?",
        "On which day was this paid?",
        "Give the date of the sale.",
    ),
    "address": (
        "What is the address of the shop?",
        "Where is the company located?",
        "Which address is printed on the receipt?",
        "Give the seller's address.",
    ),
    "total": (
        "What is the total?",
        "How much was paid in all?",
        "What does the receipt come to?",
        "Give the total amount.",
        "Which sum was charged?",
    ),
}


def ask(phrasings: dict[str, tuple[str, ...]], key: str, rng: random.Random) -> str:
    """Return a question about `key`, in a wording drawn from `rng`."""
    return rng.choice(phrasings[key])
